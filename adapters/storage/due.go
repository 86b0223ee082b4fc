package storage

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Due is buyfund.Books.
func (s *Store) Due(ctx context.Context, on day.Day, after *fund.Operation, limit int) ([]*fund.Operation, error) {
	if err := s.RequireSchema(ctx); err != nil {
		return nil, err
	}
	var afterDay day.Day
	var afterID operation.ID
	if after != nil {
		afterDay, afterID = after.Sales[0].Terms().SelectedDay, after.ID
	}
	// Whole operations only: the inner query counts operations, the outer one
	// reads all their sales.
	due := "FROM " + s.prefix + "sales WHERE state = 1 AND selected_date <= " + s.day()
	query := saleColumns + ` FROM ` + s.prefix + `sales WHERE state = 1 AND (selected_date, operation_id) IN (
 SELECT selected_date, operation_id ` + due + ` AND (selected_date, operation_id) > (` + s.day() + `, ?)
 GROUP BY selected_date, operation_id ORDER BY selected_date, operation_id LIMIT ?)
 ORDER BY selected_date, operation_id, position`
	found, err := s.engine.Reads.WithContext(ctx).Raw(query, on.String(), earliest(afterDay), s.id(afterID), limit).Rows()
	if err != nil {
		return nil, s.translate(err)
	}
	defer found.Close()
	operations, err := readDue(found)
	return operations, s.translate(err)
}

// DueSales counts the sales that are recorded for that day or an earlier one,
// and says which day the oldest of them has; no day when there is none. It
// reads the index of what waits, and nothing else.
func (s *Store) DueSales(ctx context.Context, on day.Day) (count int64, oldest day.Day, err error) {
	query := "SELECT COUNT(*), CAST(MIN(selected_date) AS text) FROM " + s.prefix + "sales WHERE state = 1 AND selected_date <= " + s.day()
	var first sql.NullString
	if err := s.engine.Reads.WithContext(ctx).Raw(query, on.String()).Row().Scan(&count, &first); err != nil {
		return 0, oldest, s.translate(err)
	}
	if first.Valid {
		oldest, err = day.Parse(first.String)
	}
	return count, oldest, err
}

// earliest stands for no day in comparisons: a day before all others.
func earliest(d day.Day) string {
	if d.IsNone() {
		return "0001-01-01"
	}
	return d.String()
}

func readDue(found *sql.Rows) ([]*fund.Operation, error) {
	var operations []*fund.Operation
	var last *fund.Operation
	for found.Next() {
		row, err := scanSale(found)
		if err != nil {
			return nil, err
		}
		if last == nil || last.ID != row.OperationID {
			last = row.operation()
			operations = append(operations, last)
		}
		terms, err := row.terms()
		if err != nil {
			return nil, err
		}
		last.Sales = append(last.Sales, fund.RestoreSale(terms))
	}
	return operations, found.Err()
}

// saleRow is a row of the table sales.
type saleRow struct {
	OperationID  operation.ID
	Position     int64
	Subscription string
	Header       operation.Header

	CustomerNo            int64
	IMKBCode              string
	HolderCorporationName string
	PriceID               int64
	Units                 int64
	AccountCustomerNo     int64
	BranchCode            int64
	AccountSuffix         int64
	CurrencyCode          string
	ControlTotal          int64
	SelectedDate          sql.NullString
	ReceivedAt            instantColumn

	State          int64
	SettledPriceID sql.NullInt64
	SettledPrice   sql.NullInt64
	Proceeds       sql.NullInt64
	Refusal        string
	SettledAt      instantColumn
}

const saleColumns = `SELECT operation_id, position, subscription,
 app_key, channel, teller_name, caller_id, channel_session_id, channel_request_id,
 customer_no, imkb_code, holder_corporation_name, price_id, units,
 account_customer_no, branch_code, account_suffix, currency_code, control_total,
 CAST(selected_date AS text), received_at,
 state, settled_price_id, settled_price, proceeds, refusal, settled_at`

func scanSale(rows *sql.Rows) (r saleRow, err error) {
	id := idColumn{&r.OperationID}
	h := &r.Header
	err = rows.Scan(&id, &r.Position, &r.Subscription,
		&h.AppKey, &h.Channel, &h.TellerName, &h.CallerID, &h.ChannelSessionID, &h.ChannelRequestID,
		&r.CustomerNo, &r.IMKBCode, &r.HolderCorporationName, &r.PriceID, &r.Units,
		&r.AccountCustomerNo, &r.BranchCode, &r.AccountSuffix, &r.CurrencyCode, &r.ControlTotal,
		&r.SelectedDate, &r.ReceivedAt,
		&r.State, &r.SettledPriceID, &r.SettledPrice, &r.Proceeds, &r.Refusal, &r.SettledAt)
	return r, err
}

// operation is the recorded operation that the row begins, without its sales.
func (r *saleRow) operation() *fund.Operation {
	return &fund.Operation{
		ID:           r.OperationID,
		Subscription: r.Subscription,
		Header:       r.Header,
		ReceivedAt:   r.ReceivedAt.Time,
		Due:          true,
	}
}

func (r *saleRow) terms() (fund.Terms, error) {
	currency, err := restoreCurrency(r.CurrencyCode)
	if err != nil {
		return fund.Terms{}, err
	}
	var selected day.Day
	if r.SelectedDate.Valid {
		if selected, err = day.Parse(r.SelectedDate.String); err != nil {
			return fund.Terms{}, fmt.Errorf("sale of operation %s: %w", r.OperationID, err)
		}
	}
	return fund.Terms{
		Holding: fund.HoldingKey{
			CustomerNo: r.CustomerNo,
			Fund:       fund.Fund{IMKBCode: r.IMKBCode, HolderCorporationName: r.HolderCorporationName},
		},
		Units: fund.Units(r.Units),
		Account: fund.AccountKey{
			CustomerNo:    r.AccountCustomerNo,
			BranchCode:    r.BranchCode,
			AccountSuffix: r.AccountSuffix,
			Currency:      currency,
		},
		PriceID:      r.PriceID,
		ControlTotal: r.ControlTotal,
		SelectedDay:  selected,
	}, nil
}

// entry is the row as history.
func (r *saleRow) entry() (fund.SaleEntry, error) {
	terms, err := r.terms()
	e := fund.SaleEntry{
		OperationID:  r.OperationID,
		Position:     int(r.Position),
		Subscription: r.Subscription,
		Header:       r.Header,
		ReceivedAt:   r.ReceivedAt.Time,
		Terms:        terms,
		State:        operation.State(r.State), //nolint:gosec // written by us
		PriceID:      r.SettledPriceID.Int64,
		PerUnit:      fund.UnitPrice(r.SettledPrice.Int64),
		Refusal:      r.Refusal,
		SettledAt:    r.SettledAt.Time,
	}
	if r.Proceeds.Valid {
		e.Proceeds = money.New(r.Proceeds.Int64, terms.Account.Currency)
	}
	return e, err
}

// day is the placeholder of a day.
func (s *Store) day() string {
	if s.engine.Dialect == Postgres {
		return "CAST(? AS date)"
	}
	return "?"
}

// id is an operation's ID as an argument.
func (s *Store) id(id operation.ID) any {
	if s.engine.Dialect == Postgres {
		return id.String()
	}
	return id[:]
}

// idColumn reads an ID: a text on Postgres, 16 bytes on SQLite.
type idColumn struct{ into *operation.ID }

func (c *idColumn) Scan(value any) (err error) {
	switch v := value.(type) {
	case []byte:
		if len(v) == len(c.into) {
			*c.into = operation.ID(v)
			return nil
		}
		*c.into, err = operation.ParseID(string(v))
		return err
	case string:
		*c.into, err = operation.ParseID(v)
		return err
	}
	return fmt.Errorf("an ID is stored as %T", value)
}

// instantColumn reads a time: as such on Postgres, as a text on SQLite. NULL
// is the zero time.
type instantColumn struct{ time.Time }

func (c *instantColumn) Scan(value any) (err error) {
	switch v := value.(type) {
	case nil:
		c.Time = time.Time{}
	case time.Time:
		c.Time = v.UTC()
	case string:
		c.Time, err = time.Parse(instantLayout, v)
	default:
		return fmt.Errorf("a time is stored as %T", value)
	}
	return err
}
