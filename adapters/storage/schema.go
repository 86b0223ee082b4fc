package storage

import "slices"

// tables is what the hot path knows of the schema; migrations/ has the whole.
type tables struct {
	holdings, accounts, prices, operations, sales, postings, notifications table
}

// header are the columns of operation.Header, and whose it is.
var header = []column{
	{"subscription", text}, {"app_key", text | defaulted}, {"channel", text | defaulted}, {"teller_name", text | defaulted},
	{"caller_id", text | defaulted}, {"channel_session_id", text | defaulted}, {"channel_request_id", text | defaulted},
}

var settled = []column{
	{"state", integer}, {"settled_price_id", optionalInteger | defaulted}, {"settled_price", optionalInteger | defaulted},
	{"proceeds", optionalInteger | defaulted}, {"refusal", text | defaulted}, {"settled_at", instant | defaulted},
}

func newTables(prefix string) tables {
	return tables{
		holdings: table{prefix + "holdings", 3, []column{
			{"customer_no", integer}, {"imkb_code", text}, {"holder_corporation_name", text}, {"units", integer},
		}},
		accounts: table{prefix + "accounts", 4, []column{
			{"customer_no", integer}, {"branch_code", integer}, {"account_suffix", integer}, {"currency_code", text},
			{"balance", integer},
		}},
		prices: table{prefix + "prices", 1, []column{
			{"price_id", integer}, {"imkb_code", text}, {"holder_corporation_name", text},
			{"price", integer}, {"currency_code", text}, {"valid_from", date},
		}},
		operations: table{prefix + "operations", 3, []column{
			{"caller_id", text}, {"subscription", text}, {"operation", integer},
			{"operation_id", identifier}, {"fingerprint", blob}, {"state", integer}, {"faults", text | defaulted},
		}},
		sales: table{prefix + "sales", 3, slices.Concat(
			[]column{{"customer_no", integer}, {"operation_id", identifier}, {"position", integer}},
			header,
			[]column{
				{"imkb_code", text}, {"holder_corporation_name", text}, {"price_id", integer}, {"units", integer},
				{"account_customer_no", integer}, {"branch_code", integer}, {"account_suffix", integer}, {"currency_code", text},
				{"control_total", integer | defaulted}, {"selected_date", date | defaulted}, {"received_at", instant},
			},
			settled,
		)},
		postings: table{prefix + "postings", 4, []column{
			{"customer_no", integer}, {"operation_id", identifier}, {"position", integer}, {"leg", integer},
			{"kind", integer}, {"imkb_code", text | defaulted}, {"holder_corporation_name", text | defaulted},
			{"branch_code", integer | defaulted}, {"account_suffix", integer | defaulted}, {"currency_code", text | defaulted},
			{"quantity", integer}, {"posted_at", instant},
		}},
		notifications: table{prefix + "notifications", 2, slices.Concat(
			[]column{{"user_id", text}, {"digest", blob}, {"operation_id", identifier}, {"position", integer}},
			header,
			[]column{
				{"external_application_code", text}, {"external_tran_code", text | defaulted}, {"push_id", text},
				{"push_interaction_id", optionalInteger | defaulted}, {"platform", integer}, {"subject", text | defaulted}, {"content", text | defaulted},
				{"deep_link_url", text | defaulted}, {"send_status", integer}, {"send_date", date | defaulted}, {"tran_data", text},
				{"received_at", instant},
			},
		)},
	}
}

// statements are all statements of the hot path and of imports.
type statements struct {
	findHolding, findAccount, findPrice, findCurrentPrice, findOperation, claimSale *statement
	putHolding, putAccount, addHolding, addAccount, addPrice                        *statement
	insertOperation, insertSale, insertPosting, insertNotification                  *statement
	changeOperation, changeSale                                                     *statement
	presumePrice, moveHolding, moveAccount                                          *statement
}

func newStatements(t tables) statements {
	const newest = " ORDER BY valid_from DESC, price_id DESC LIMIT 1"
	return statements{
		findHolding:   t.holdings.find("t.units", "", " FOR UPDATE"),
		findAccount:   t.accounts.find("t.balance", "", " FOR UPDATE"),
		findPrice:     t.prices.find("t.imkb_code, t.holder_corporation_name, t.price, t.currency_code, CAST(t.valid_from AS text)", "", ""),
		findOperation: t.operations.find("t.operation_id, t.fingerprint, t.state, t.faults", "", ""),
		findCurrentPrice: lookup("find current "+t.prices.name,
			[]column{{"imkb_code", text}, {"holder_corporation_name", text}, {"valid_from", date}},
			"SELECT t.price_id, t.price, t.currency_code, CAST(t.valid_from AS text) FROM "+t.prices.name+
				" t WHERE t.imkb_code = k.imkb_code AND t.holder_corporation_name = k.holder_corporation_name"+
				" AND t.valid_from <= k.valid_from::date"+newest,
			"SELECT price_id, price, currency_code, valid_from FROM "+t.prices.name+
				" WHERE imkb_code = ? AND holder_corporation_name = ? AND valid_from <= ?"+newest),
		claimSale: t.sales.find("t.position", " AND t.state = 1", " FOR UPDATE SKIP LOCKED"),

		putHolding: t.holdings.put("units"),
		putAccount: t.accounts.put("balance"),
		addHolding: t.holdings.insert(""),
		addAccount: t.accounts.insert(""),
		addPrice:   t.prices.insert(" ON CONFLICT (price_id) DO NOTHING"),

		insertOperation:    t.operations.insert(""),
		insertSale:         t.sales.insert(""),
		insertPosting:      t.postings.insert(""),
		insertNotification: t.notifications.insert(" ON CONFLICT (user_id, digest) DO NOTHING"),

		changeOperation: t.operations.update([]column{{"state", integer}, {"faults", text | defaulted}}),
		changeSale:      t.sales.update(settled),

		presumePrice: t.prices.presumePrice(newest),
		moveHolding:  t.holdings.move("units"),
		moveAccount:  t.accounts.move("balance"),
	}
}
