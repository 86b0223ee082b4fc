package postgres

var (
	TransactionSettings = transactionSettings
	IsUndone            = isUndone
)
