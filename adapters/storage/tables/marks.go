package tables

// MarkRow is the row of the table marks of a database with a mark. The book of a
// bank has no row.
type MarkRow struct {
	Mark string `gorm:"primaryKey"`
	Note string `gorm:"not null"`
}
