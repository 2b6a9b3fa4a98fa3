"""`python -m onboard`: the program, where its folder is not on the PATH."""

from cli.main import main

if __name__ == "__main__":
    main()
