package tables

// MarkRow is the row of the table marks. Only a database with a mark has it, a bank's book not.
type MarkRow struct {
	Mark string `gorm:"primaryKey"`
	Note string `gorm:"not null"`
}
