"""Programs that ask a device where things lie; the same on the simulator and on a GPU."""
