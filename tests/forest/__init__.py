"""The forests as arrays: they are River's, number by number."""
