"""What tests are made with: services they start, bases and jobs they use, programs they drive."""
