package postgres

var TransactionSettings = transactionSettings
