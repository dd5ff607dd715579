"""Runs kernels on a HIP device or on the simulator and compares them with their oracles."""
