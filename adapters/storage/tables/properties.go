package tables

// PropertyRow is a row of the table properties: something that is true of the book as a whole.
type PropertyRow struct {
	Name  string `gorm:"primaryKey"`
	Value string `gorm:"not null"`
}

// KeyProperty is the key of what is kept of messages whose personal data are erased: with
// it somebody can test what a text was. So it is in no export, and in no other table.
const KeyProperty = "messages_key"
