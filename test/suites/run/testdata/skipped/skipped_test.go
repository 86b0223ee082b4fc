package skipped

import "testing"

func TestOne(t *testing.T) { t.Skip("SKIPPED: no Postgres here") }

func TestTwo(t *testing.T) { t.Skip("SKIPPED: no Postgres here") }
