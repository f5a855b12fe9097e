"""Reading and writing values in a schema registry's wire format, where one is configured."""
