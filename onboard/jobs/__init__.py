"""Submit, control and observe jobs, and wake workers for them."""
