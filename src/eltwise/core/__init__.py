"""What every other package stands on: errors, element types, shapes, broadcasting and exact casts."""
