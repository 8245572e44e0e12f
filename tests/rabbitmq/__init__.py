"""Tests of RabbitMQ beyond the contract of every transport."""
