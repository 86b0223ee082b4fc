// Package bookfile reads the bank's book from CSV files and writes it as CSV and NDJSON.
//
// # Reading
//
// A file is CSV (RFC 4180, UTF-8, with or without a byte order mark, lines ending in LF or
// CRLF). Its first line names the columns, in any order:
//
//	prices    PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom
//	holdings  CustomerNo,IMKBCode,HolderCorporationName,Units
//	accounts  BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance
//	calendar  Day,Reason
//
// Numbers are written with all their digits, as in 1234.5: a number with an exponent was
// shortened by a spreadsheet, and is refused. Texts are not changed.
//
// A file whose first line has semicolons was saved by a spreadsheet as in Turkey: a comma stands
// before the decimals, a day may be 27.11.2026, and the apostrophes of Excel are removed.
//
// The whole file is checked before the first line is passed on. Every error is reported with its
// line and column. Lines are passed on in the order of their keys, so that all writers lock rows
// in the same order. Memory does not grow with the file.
//
// # Writing
//
// Files that Import reads are written with the same columns. The other files have the field
// names of the requests. AccountCustomerNo is DestinationAccount.CustomerNo. Position counts
// from 0 within the operation, or is the line of the import. Refusal is the code of a refused
// sale. PriceID is that of the request; SettledPriceID and SettledPrice are those of the price at
// which the sale was settled.
//
// A posting is two rows, one for the customer and one for the bank, so that the columns Units
// and Amount sum to zero for each fund and currency. The row of the bank has no customer and no
// account. Kind is sale, opening, adjustment or reversal. OperationId is that of the sale or of
// its reversal, or the ID of the act that imported or corrected.
//
// Codes of operations has the code of each fault, in the order of the answer. Codes of outcomes and
// of requests has each code once.
//
// For a spreadsheet, an apostrophe stands before each part of a text that it may run as a
// formula, also after a separator inside the text.
//
// Quantities are exact in both formats: units and prices without trailing zeros, money with the
// decimals of its currency. Times are RFC 3339 in UTC with six decimals. For Excel they are in
// the time zone of the bank, to the second. A missing value is empty in CSV. In NDJSON a
// missing number or time is null, and a missing text is "". TranData is JSON in both formats.
package bookfile
