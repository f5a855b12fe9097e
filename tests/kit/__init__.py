"""What tests share: streams, models, records, brokers, pipelines."""
