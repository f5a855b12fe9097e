"""Files and programs to run the project, outside of the published package."""
