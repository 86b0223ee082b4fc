package storage

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"
)

// Dialect is the SQL an engine speaks.
type Dialect string

// The dialects.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// Options are how to open a database.
type Options struct {
	// DSN is the file of SQLite, the URL of Postgres: a secret.
	DSN string
	// MaxConnections is the most connections at once; 0 is the engine's default.
	MaxConnections int
	// StatementTimeout ends statements that take longer.
	StatementTimeout time.Duration
	// TablePrefix stands before the name of every table and index, so that
	// they can live in a host's database. Letters, digits and underscores.
	TablePrefix string
}

// Engine is an opened database: all that differs between databases. The
// packages sqlite and postgres make one; it carries no rule of the bank.
type Engine struct {
	Dialect Dialect
	// Version is the engine's own version, for people.
	Version string
	// DB writes, and reads what it writes. Reads is for reading only, from a
	// snapshot; it may be the same.
	DB, Reads *gorm.DB
	// Begin starts the transaction of a batch.
	Begin func(context.Context) (Session, error)
	// Classify says what a native error means.
	Classify func(error) Failure
	// Close closes what was opened, and nothing that was handed in.
	Close func() error
}

// Pools are the connection pools, by what they are for.
func (e *Engine) Pools() (map[string]*sql.DB, error) {
	writes, err := e.DB.DB()
	if err != nil {
		return nil, err
	}
	reads, err := e.Reads.DB()
	if err != nil || reads == writes {
		return map[string]*sql.DB{"all": writes}, err
	}
	return map[string]*sql.DB{"writes": writes, "reads": reads}, nil
}

// Failure is what an engine's error means to those who wait.
type Failure uint8

// The failures.
const (
	// Unknown is an error that trying again will not mend.
	Unknown Failure = iota
	// LostRace: the transaction was undone in favour of another one; run again
	// it may well succeed.
	LostRace
	// Unreachable: no connection, no space, no time. Nothing was committed.
	Unreachable
	// Interrupted: the connection was lost while the commit was on its way.
	Interrupted
)

// Session is one transaction on one connection. It is used by one goroutine,
// and ends with Rollback, also after Commit.
type Session interface {
	// Exchange sends the requests, in one round trip where the engine can.
	Exchange(ctx context.Context, requests ...Request) error
	// Commit sends the requests together with the commit. No Exchange may
	// follow.
	Commit(ctx context.Context, requests ...Request) error
	// Rollback undoes what was not committed and gives the connection back.
	Rollback()
}

// Request is one statement for many rows.
type Request struct {
	// Name is what it does, for traces: no values.
	Name string
	// SQL is in the engine's dialect: on Postgres one command for all Rows, on
	// SQLite one for each of them.
	SQL  string
	Rows *Rows
	// Found gets each row that a look-up finds; nil for what is no look-up.
	Found func(Scan) error
}

// Scan reads a row into variables and returns the number of the key it was
// found for, from 0.
type Scan func(into ...any) (key int, err error)
