"""What is needed to run the project somewhere, and no part of the package that is published."""
