"""ONNX models in another opset: a few operators by rules of our own, every other one by onnx's converter."""
