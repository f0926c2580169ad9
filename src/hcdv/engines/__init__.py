"""Where kernels run: every engine gives the same answers as the local one."""
