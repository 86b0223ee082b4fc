package settings

import (
	"strings"
	"unicode"
)

// File returns the name of the SQLite file in storage.dsn. The name may begin with "file:".
// Everything that works on the file of the book must call File: the service, its commands, the
// key of the trail beside it.
func (s Storage) File() string { return strings.TrimPrefix(string(s.DSN), "file:") }

// brokenFile returns the rule that the name of a SQLite file breaks, or nothing. SQLite and other
// programs take some names for more than a name: then a typing error would make a new book
// under an odd name, and no command would find the old one.
func (s Storage) brokenFile() string {
	name := s.File()
	isURI := name != string(s.DSN)
	switch {
	case name == "":
		return "must name the SQLite file"
	case strings.HasPrefix(name, ":memory:") || strings.Contains(name, "mode=memory"):
		return "must name a SQLite file: a book in memory would be lost"
	case strings.Contains(name, "?"):
		return "must be the name of a SQLite file without parameters such as ?mode=rwc: the service sets its own"
	case strings.Contains(name, "#") || isURI && strings.Contains(name, "%"):
		return "must be the plain name of a SQLite file, without # and without characters written as %20"
	case strings.Contains(name, "://") || isURI && strings.HasPrefix(name, "//"):
		return "must be the name of a SQLite file, not a URL: data/bankingapi.db, or file:data/bankingapi.db"
	case strings.HasPrefix(name, "sqlite:") || strings.HasPrefix(name, "sqlite3:") || strings.HasPrefix(strings.ToLower(name), "file:"):
		return "must be the name of a SQLite file, without a word and a colon before it: data/bankingapi.db"
	case strings.HasPrefix(name, "~"):
		return "must be the full name of a SQLite file: ~ is not replaced by a home folder"
	case strings.HasPrefix(name, "$"):
		return "must be the full name of a SQLite file: $ is not replaced by a variable"
	case strings.HasPrefix(name, `"`) || strings.HasPrefix(name, "'"):
		return "must be the name of a SQLite file without quotes around it"
	case name != strings.TrimSpace(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "must be the name of a SQLite file without blanks at its ends and without characters that cannot be printed"
	case strings.HasSuffix(name, "/") || name == "." || name == "..":
		return "must name a SQLite file, not a folder"
	case strings.HasSuffix(name, "-wal") || strings.HasSuffix(name, "-shm") || strings.HasSuffix(name, "-journal"):
		return "must name the SQLite file itself, not one of the files that SQLite keeps beside it"
	}
	return ""
}
