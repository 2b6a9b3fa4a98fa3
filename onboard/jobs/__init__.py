"""A job from the outside: how it is submitted, controlled, watched, and rung for."""
