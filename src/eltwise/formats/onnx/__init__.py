"""ONNX model files and tensors."""
