"""What makes an ONNX message no valid model, found before anything is done with it."""
