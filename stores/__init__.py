"""The only code that talks to a store: DynamoDB (scorebook), Redis (lanes, boards), Kafka (log)."""
