package tables

// PropertyRow is a row of the table properties: a property of the whole book.
type PropertyRow struct {
	Name  string `gorm:"primaryKey"`
	Value string `gorm:"not null"`
}

// KeyProperty is the name of the key for the identities of messages. With this key a person
// can test guesses of a text. So it is in no export, and in no other table.
const KeyProperty = "messages_key"
