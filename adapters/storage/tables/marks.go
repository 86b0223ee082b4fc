package tables

// MarkRow is the row of the table marks. A bank's book has no such row.
type MarkRow struct {
	Mark string `gorm:"primaryKey"`
	Note string `gorm:"not null"`
}
