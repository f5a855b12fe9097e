"""Everything that is private to Faust and aiokafka; no other module imports them."""
