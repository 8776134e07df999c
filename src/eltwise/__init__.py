"""Element-wise subtraction of ONNX and OpenVINO models, bit for bit."""
