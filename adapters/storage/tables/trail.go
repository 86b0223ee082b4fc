package tables

import (
	"database/sql"
	"fmt"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// TrailBatchRow is a row of the table trail_batches: the leaves of one commit.
type TrailBatchRow struct {
	BatchID batch.UUID `gorm:"primaryKey"`
	Entries []byte     `gorm:"not null"`
	// MAC authenticates the service that made the batch (proof.Keys).
	MAC []byte `gorm:"not null"`
	// Position is the index in the log. It is NULL until the batch is sealed.
	Position sql.NullInt64
}

func openTrail(d *Database) {
	t := openBeside[TrailBatchRow](d, Relied{Rights: addAndChange})
	id := t.Select("batch_id")
	d.FindNewerBatch = t.Lookup("find newer "+t.Name, batch.Lookup{
		Select: id, Order: "t.batch_id DESC", Where: []batch.Condition{{Column: id[0], Operator: ">"}},
	})
	d.TrailBatches = t
	d.TrailHashes = openBeside[TrailHashRow](d, Relied{Rights: addOnly})
}

// TrailHashRow is a row of the table trail_hashes: a node of the log's tree.
type TrailHashRow struct {
	HashIndex int64  `gorm:"primaryKey"`
	Hash      []byte `gorm:"not null"`
}

// IsElsewhere reports whether a batch without leaves has another position than it was made for.
func (r *TrailBatchRow) IsElsewhere(p *proof.Provenance) bool {
	return len(r.Entries) == 0 && (!r.Position.Valid || r.Position.Int64 != p.Base.Size)
}

// Batch decodes the entries.
func (r *TrailBatchRow) Batch() (proof.Batch, error) {
	entries, err := proof.ParseEntries(r.Entries)
	if err != nil {
		return proof.Batch{}, fmt.Errorf("batch %s of the trail: %w", r.BatchID, err)
	}
	return proof.Batch{ID: operation.ID(r.BatchID), Entries: entries}, nil
}
