"""Export versions for other programs, without Onboard."""
