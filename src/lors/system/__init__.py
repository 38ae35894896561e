"""The ground floor: errors, progress, seeds, devices, processes, locks, signals, time, memory."""
