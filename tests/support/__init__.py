"""What several tests share: models, cases, planted faults and runtimes, hostile input."""
