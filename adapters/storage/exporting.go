package storage

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"strings"
	"time"

	"gorm.io/gorm"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// Filter narrows an export. Its zero value takes everything; what does not
// apply to a kind of rows is left aside.
type Filter struct {
	// CustomerNo takes holdings, accounts, sales and postings of that customer.
	CustomerNo int64
	// UserID takes notifications of that user.
	UserID string
	// Since and Until take what was received (sales, notifications), posted
	// (postings) or valid (prices, from 00:00 of their day in Zone) not before
	// Since and before Until.
	Since, Until time.Time
	// Zone is the bank's. Prices need it when Since or Until is set.
	Zone *time.Location
	// State takes sales in that state.
	State operation.State
}

// The Export methods stream all rows that fit the filter, as they were at one
// moment, in the order of their primary key. No row is held in memory. After
// an error, which is of the kinds the ports promise, there is no other row.
// Each use of the result reads anew; while it is read it keeps a connection.

// ExportPrices streams prices.
func (s *Store) ExportPrices(ctx context.Context, f Filter) iter.Seq2[fund.Price, error] {
	var w where
	w.when(!f.Since.IsZero(), "valid_from >= "+s.day(), func() any { return firstDay(f.Since, f.Zone).String() })
	w.when(!f.Until.IsZero(), "valid_from < "+s.day(), func() any { return firstDay(f.Until, f.Zone).String() })
	query := `SELECT price_id, imkb_code, holder_corporation_name, price, currency_code, CAST(valid_from AS text)
 FROM ` + s.prefix + "prices" + w.String() + " ORDER BY price_id"
	return export(ctx, s, query, w.arguments, func(rows *sql.Rows) (fund.Price, error) {
		var r priceRow
		if err := rows.Scan(&r.PriceID, &r.IMKBCode, &r.HolderCorporationName, &r.Price, &r.CurrencyCode, &r.ValidFrom); err != nil {
			return fund.Price{}, err
		}
		return r.price()
	})
}

// firstDay is the first day that does not begin before the instant.
func firstDay(instant time.Time, zone *time.Location) day.Day {
	d := day.Of(instant, zone)
	if d.Start(zone).Before(instant) {
		return d.Plus(1)
	}
	return d
}

// ExportHoldings streams holdings.
func (s *Store) ExportHoldings(ctx context.Context, f Filter) iter.Seq2[fund.Holding, error] {
	var w where
	w.customer(f)
	query := "SELECT customer_no, imkb_code, holder_corporation_name, units FROM " + s.prefix + "holdings" + w.String() +
		" ORDER BY customer_no, imkb_code, holder_corporation_name"
	return export(ctx, s, query, w.arguments, func(rows *sql.Rows) (h fund.Holding, err error) {
		err = rows.Scan(&h.Key.CustomerNo, &h.Key.IMKBCode, &h.Key.HolderCorporationName, &h.Units)
		return h, err
	})
}

// ExportAccounts streams accounts.
func (s *Store) ExportAccounts(ctx context.Context, f Filter) iter.Seq2[fund.Account, error] {
	var w where
	w.customer(f)
	query := "SELECT customer_no, branch_code, account_suffix, currency_code, balance FROM " + s.prefix + "accounts" + w.String() +
		" ORDER BY customer_no, branch_code, account_suffix, currency_code"
	return export(ctx, s, query, w.arguments, func(rows *sql.Rows) (a fund.Account, err error) {
		var code string
		var balance int64
		if err = rows.Scan(&a.Key.CustomerNo, &a.Key.BranchCode, &a.Key.AccountSuffix, &code, &balance); err != nil {
			return a, err
		}
		a.Key.Currency, err = restoreCurrency(code)
		a.Balance = money.New(balance, a.Key.Currency)
		return a, err
	})
}

// ExportSales streams sales of every state, as they were received.
func (s *Store) ExportSales(ctx context.Context, f Filter) iter.Seq2[fund.SaleEntry, error] {
	var w where
	w.customer(f)
	s.between(&w, "received_at", f)
	w.when(f.State != 0, "state = ?", func() any { return int64(f.State) })
	query := saleColumns + " FROM " + s.prefix + "sales" + w.String() + " ORDER BY operation_id, position"
	return export(ctx, s, query, w.arguments, func(rows *sql.Rows) (fund.SaleEntry, error) {
		r, err := scanSale(rows)
		if err != nil {
			return fund.SaleEntry{}, err
		}
		return r.entry()
	})
}

// ExportPostings streams postings, as their sales and imports were received.
func (s *Store) ExportPostings(ctx context.Context, f Filter) iter.Seq2[fund.PostingEntry, error] {
	var w where
	w.customer(f)
	s.between(&w, "posted_at", f)
	query := `SELECT customer_no, operation_id, position, leg, kind, imkb_code, holder_corporation_name,
 branch_code, account_suffix, currency_code, quantity, posted_at
 FROM ` + s.prefix + "postings" + w.String() + " ORDER BY operation_id, position, leg"
	return export(ctx, s, query, w.arguments, scanPosting)
}

func scanPosting(rows *sql.Rows) (p fund.PostingEntry, err error) {
	var customerNo, leg, kind int64
	var holding fund.HoldingKey
	var account fund.AccountKey
	var code string
	var at instantColumn
	err = rows.Scan(&customerNo, &idColumn{&p.OperationID}, &p.Position, &leg, &kind, &holding.IMKBCode, &holding.HolderCorporationName,
		&account.BranchCode, &account.AccountSuffix, &code, &p.Quantity, &at)
	if err != nil {
		return p, err
	}
	p.Kind, p.PostedAt = fund.PostingKind(kind), at.Time //nolint:gosec // written by us
	if leg == unitLeg {
		p.Holding = holding
		p.Holding.CustomerNo = customerNo
		return p, nil
	}
	p.Account = account
	p.Account.CustomerNo = customerNo
	p.Account.Currency, err = restoreCurrency(code)
	return p, err
}

// ExportNotifications streams notifications.
func (s *Store) ExportNotifications(ctx context.Context, f Filter) iter.Seq2[push.Entry, error] {
	var w where
	w.when(f.UserID != "", "user_id = ?", func() any { return f.UserID })
	s.between(&w, "received_at", f)
	query := `SELECT operation_id, position, subscription,
 app_key, channel, teller_name, caller_id, channel_session_id, channel_request_id, received_at,
 external_application_code, external_tran_code, user_id, push_id, push_interaction_id, platform, subject, content,
 deep_link_url, send_status, CAST(send_date AS text), tran_data
 FROM ` + s.prefix + "notifications" + w.String() + " ORDER BY user_id, digest"
	return export(ctx, s, query, w.arguments, scanNotification)
}

func scanNotification(rows *sql.Rows) (n push.Entry, err error) {
	h, r := &n.Header, &n.Record
	var at instantColumn
	var interaction sql.NullInt64
	var sendDate sql.NullString
	var tranData string
	err = rows.Scan(&idColumn{&n.OperationID}, &n.Position, &n.Subscription,
		&h.AppKey, &h.Channel, &h.TellerName, &h.CallerID, &h.ChannelSessionID, &h.ChannelRequestID, &at,
		&r.ExternalApplicationCode, &r.ExternalTranCode, &r.UserID, &r.PushID, &interaction, &r.Platform, &r.Subject, &r.Content,
		&r.DeepLinkURL, &r.Sent, &sendDate, &tranData)
	if err != nil {
		return n, err
	}
	n.ReceivedAt = at.Time
	r.PushInteractionID, r.HasPushInteractionID = interaction.Int64, interaction.Valid
	if sendDate.Valid {
		if r.SendDate, err = day.Parse(sendDate.String); err != nil {
			return n, fmt.Errorf("notification of operation %s: %w", n.OperationID, err)
		}
	}
	r.TranData, err = parseTranData(tranData)
	return n, err
}

// where collects conditions and their arguments.
type where struct {
	conditions []string
	arguments  []any
}

func (w *where) when(applies bool, condition string, argument func() any) {
	if applies {
		w.conditions = append(w.conditions, condition)
		w.arguments = append(w.arguments, argument())
	}
}

func (w *where) customer(f Filter) {
	w.when(f.CustomerNo != 0, "customer_no = ?", func() any { return f.CustomerNo })
}

func (s *Store) between(w *where, column string, f Filter) {
	w.when(!f.Since.IsZero(), column+" >= ?", func() any { return s.instant(f.Since) })
	w.when(!f.Until.IsZero(), column+" < ?", func() any { return s.instant(f.Until) })
}

func (w *where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

// instant is a time as an argument: the first that is stored with microseconds
// and not before t.
func (s *Store) instant(t time.Time) any {
	t = t.Add(time.Microsecond - time.Nanosecond).UTC().Truncate(time.Microsecond)
	if s.engine.Dialect == Postgres {
		return t
	}
	return t.Format(instantLayout)
}

// export streams what a query finds in a snapshot of its own.
func export[T any](ctx context.Context, s *Store, query string, arguments []any, scan func(*sql.Rows) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		wanted := true
		err := s.snapshot(ctx, func(tx *gorm.DB) error {
			return each(tx, query, arguments, func(rows *sql.Rows) (bool, error) {
				row, err := scan(rows)
				if err != nil {
					return false, err
				}
				if wanted = yield(row, nil); !wanted {
					cancel() // or closing the rows would read them to the end
				}
				return wanted, nil
			})
		})
		if err != nil && wanted {
			var none T
			yield(none, err)
		}
	}
}

// each hands every row that a query finds to found, until found wants no more.
func each(tx *gorm.DB, query string, arguments []any, found func(*sql.Rows) (more bool, err error)) error {
	rows, err := tx.Raw(query, arguments...).Rows()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if more, err := found(rows); err != nil || !more {
			return err
		}
	}
	return rows.Err()
}

// snapshot runs read in a transaction that sees the book as it is at its first
// statement, and may take its time.
func (s *Store) snapshot(ctx context.Context, read func(tx *gorm.DB) error) error {
	options := &sql.TxOptions{ReadOnly: true}
	if s.engine.Dialect == Postgres {
		options.Isolation = sql.LevelRepeatableRead
	}
	tx := s.engine.Reads.WithContext(ctx).Begin(options)
	if tx.Error != nil {
		return s.translate(tx.Error)
	}
	defer tx.Rollback()
	if s.engine.Dialect == Postgres {
		if err := tx.Exec(noTimeout).Error; err != nil {
			return s.translate(err)
		}
	}
	return s.translate(read(tx))
}

// noTimeout lifts storage.statement_timeout from a transaction that streams.
const noTimeout = "SET LOCAL statement_timeout = 0"
