// Package bookfile reads and writes the files of the bank's book: CSV in, CSV
// and NDJSON out.
//
// # Reading
//
// A file is CSV (RFC 4180, UTF-8, with or without a byte order mark, lines
// ending in LF or CRLF) whose first line names the columns, in any order:
//
//	prices    PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom
//	holdings  CustomerNo,IMKBCode,HolderCorporationName,Units
//	accounts  BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance
//
// Numbers are spelled as in JSON; texts are kept byte for byte. Everything is
// checked before anything is handed on, and every fault is told with its line
// and column. What is handed on is sorted by key, so that whoever writes it
// locks in the one order of the bank; memory does not grow with the file.
//
// # Writing
//
// What is read comes back in the same columns. The other files are
//
//	sales          OperationId,Position,Subscription, the header's six fields,
//	               CustomerNo,TransactionType,FundAmount,BranchCode,
//	               AccountCustomerNo,AccountSuffix,CurrencyCode,IMKBCode,
//	               HolderCorporationName,PriceID,Amount,SelectedTransactionDate,
//	               State,SettledPriceID,Price,Proceeds,Refusal,ReceivedAt,SettledAt
//	postings       OperationId,Position,Kind,Side,CustomerNo,IMKBCode,
//	               HolderCorporationName,BranchCode,AccountSuffix,CurrencyCode,
//	               Units,Amount,PostedAt
//	notifications  OperationId,Position,Subscription, the header's six fields,
//	               the record's twelve fields, ReceivedAt
//
// with the field names of the requests. AccountCustomerNo is
// DestinationAccount.CustomerNo; Position counts from 0 within the operation,
// or is the line of the import; Refusal is the code of a refused sale.
//
// A posting is two rows, the customer's side and the bank's, so that the
// columns Units and Amount sum to zero, each fund and currency by itself. The
// bank's side has no customer and no account. Kind is sale, opening or
// adjustment.
//
// Quantities are exact in both formats: units and prices without trailing
// zeros, money with the decimals of its currency. Times are RFC 3339 in UTC
// with six decimals. A value that is not there is empty in CSV; in NDJSON it
// is null where it would be a number or a time, and "" where it would be a
// text. TranData is JSON in both.
package bookfile
