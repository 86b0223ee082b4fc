package command

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bankingapi/application/backoffice"
	"bankingapi/bootstrap"
	"bankingapi/domain/operation"
)

func (p program) showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show COMMAND",
		Short: "Look up an operation, a customer or a notification",
		Example: `  bankingapi show operation 019b1c2d-0000-7000-8000-000000000001
  bankingapi show customer 1001 --at 2026-11-20
  bankingapi show notification --push-id push-0001`,
		Args:        cobra.ArbitraryArgs,
		Annotations: mentionSettings(),
		RunE:        chooseCommand,
	}
	cmd.AddCommand(p.showOperationCommand(), p.showCustomerCommand(), p.showNotificationCommand())
	return cmd
}

func (p program) showOperationCommand() *cobra.Command {
	var callerID, subscription, requestID string
	cmd := &cobra.Command{
		Use:   "operation [ID]",
		Short: "Show everything that is kept of an operation",
		Long: `Shows an operation with its sales, postings and notifications. It finds refused operations, imports
and corrections too. Name it by its ID (the Operation-Id of the answer), by its CallerId and
subscription, or by the X-Request-Id of its answer.`,
		Example: `  bankingapi show operation 019b1c2d-0000-7000-8000-000000000001
  bankingapi show operation --caller-id sale-1 --subscription mobile-app
  bankingapi show operation --request-id 4711`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return wrongUsef("unexpected argument %q", args[1])
			}
			return nil
		},
		Annotations: mentionSettings(),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := 0
			for _, set := range []bool{len(args) == 1, callerID != "", requestID != ""} {
				if set {
					given++
				}
			}
			switch {
			case given != 1:
				return wrongUsef("give an ID, or --caller-id and --subscription, or --request-id")
			case (callerID == "") != (subscription == ""):
				return wrongUsef("--caller-id and --subscription go together: each subscription has CallerIds of its own")
			}
			return p.withOffice(cmd, func(office *backoffice.Office) error {
				var all []backoffice.Operation
				var err error
				var what string
				switch {
				case callerID != "":
					what = "an operation with this CallerId of this subscription"
					all, err = office.OperationsOf(cmd.Context(), subscription, callerID)
				case requestID != "":
					what = "an operation with this X-Request-Id"
					all, err = office.OperationsOfRequest(cmd.Context(), requestID)
				default:
					what = "operation " + args[0]
					id, invalid := parseID(args[0])
					if invalid != nil {
						return invalid
					}
					all = make([]backoffice.Operation, 1)
					all[0], err = office.Operation(cmd.Context(), id)
				}
				if errors.Is(err, backoffice.ErrNotFound) {
					return fmt.Errorf("not found: %s", what)
				}
				if err != nil {
					return err
				}
				for i := range all {
					if err := printOperation(cmd.OutOrStdout(), &all[i]); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&callerID, "caller-id", "", "`CallerId` of the operation, with --subscription")
	flags.StringVar(&subscription, "subscription", "", "`name` of the subscription that sent the CallerId")
	flags.StringVar(&requestID, "request-id", "", "`X-Request-Id` of the answer")
	return cmd
}

// table aligns columns.
type table struct{ *tabwriter.Writer }

func newTable(out io.Writer) table { return table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)} }

func (t table) field(name, value string) {
	if value != "" {
		if strings.ContainsFunc(value, func(r rune) bool { return !strconv.IsPrint(r) }) {
			value = strconv.Quote(value)
		}
		fmt.Fprintf(t, "%s\t%s\n", name, value)
	}
}

func (t table) request(name operation.Name, subscription string, h *operation.Header, received time.Time) {
	t.field("Name", name.String())
	t.field("Subscription", subscription)
	t.field("CallerId", h.CallerID)
	t.field("RequestId", h.RequestID)
	t.field("Received", stamp(received))
}

func printOperation(out io.Writer, o *backoffice.Operation) error {
	t := newTable(out)
	t.field("Operation", o.ID.String())
	switch {
	case len(o.Sales) > 0:
		s := &o.Sales[0]
		t.request(operation.BuyFundFromCustomer, s.Subscription, &s.Header, s.ReceivedAt)
		t.field("State", fmt.Sprintf("%d %s", s.State, s.State))
		t.field("Settled", stamp(s.SettledAt))
	case o.Refusal != nil:
		t.request(o.Refusal.Operation, o.Refusal.Subscription, &o.Refusal.Header, o.Refusal.ReceivedAt)
		t.field("State", "8 failed: refused at once, nothing was changed")
	case len(o.Notifications) > 0:
		n := &o.Notifications[0]
		t.request(operation.AddPushNotificationResponse, n.Subscription, &n.Header, n.ReceivedAt)
		t.field("State", "2 completed")
	case o.Record != nil:
		t.field("Name", o.Record.Key.Operation.String())
		t.field("Subscription", o.Record.Key.Subscription)
		t.field("CallerId", o.Record.Key.CallerID)
		t.field("State", fmt.Sprintf("%d %s", o.Record.Outcome.State, o.Record.Outcome.State))
	default:
		t.field("Name", "import or correction")
	}
	if o.Refusal != nil {
		for _, f := range o.Refusal.Faults {
			t.field("Reason", f.Code+" at "+f.Pointer)
		}
	} else if o.Record != nil {
		for _, f := range o.Record.Outcome.Faults {
			t.field("Reason", f.Code+" at "+f.Pointer)
		}
	}
	if o.Reversal != nil {
		t.field("Reversed", stamp(o.Reversal.At)+" by "+o.Reversal.ID.String())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	t = newTable(out)
	if len(o.Sales) > 0 {
		fmt.Fprintln(t, "\nSALE\tCUSTOMER\tFUND\tUNITS\tACCOUNT\tDAY\tSTATE\tPRICE\tPROCEEDS\tREFUSAL")
	}
	for i := range o.Sales {
		s := &o.Sales[i]
		price, proceeds := "-", "-"
		if s.PriceID != 0 {
			price, proceeds = s.PerUnit.String(), s.Proceeds.String()+" "+s.Terms.Account.Currency.Code()
		}
		fmt.Fprintf(t, "%d\t%d\t%s %s\t%s\t%d-%d-%d %s\t%s\t%s\t%s\t%s\t%s\n", s.Index, s.Terms.Holding.CustomerNo,
			s.Terms.Holding.IMKBCode, oneWord(s.Terms.Holding.HolderCorporationName), s.Terms.Units,
			s.Terms.Account.BranchCode, s.Terms.Account.CustomerNo, s.Terms.Account.AccountSuffix, s.Terms.Account.Currency.Code(),
			orDash(s.Terms.SelectedDay.String()), s.State, price, proceeds, orDash(s.Refusal))
	}
	if postings := append(o.Postings[:len(o.Postings):len(o.Postings)], o.ReversalPostings...); len(postings) > 0 {
		fmt.Fprintln(t, "\nPOSTED\tKIND\tPOSITION\tBY")
		for i := range postings {
			each := &postings[i]
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", stamp(each.PostedAt), each.Kind, each.Position(), each.Format(each.Quantity))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range o.Notifications {
		n := &o.Notifications[i]
		fmt.Fprintf(out, "notification %d: push %s to user %s\n", n.Index, oneWord(n.Record.PushID), oneWord(n.Record.UserID))
	}
	return nil
}

// stamp formats a time; the zero time is empty.
func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format("2006-01-02T15:04:05.000000Z07:00")
}

func (p program) showCustomerCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "customer NUMBER",
		Short: "Show what a customer has, and the statement",
		Long: `Shows the holdings and accounts of a customer, and all postings with the quantity after each. With
--at it shows them as they were at the end of that day, or before that time.`,
		Example: `  bankingapi show customer 1001
  bankingapi show customer 1001 --at 2026-11-20`,
		Args:        named("NUMBER"),
		Annotations: mentionSettings(),
		RunE: func(cmd *cobra.Command, args []string) error {
			customer, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || customer <= 0 {
				return wrongUsef("NUMBER must be a customer number greater than 0")
			}
			loaded, err := p.load(cmd)
			if err != nil {
				return err
			}
			_, until, err := moment(loaded.Settings.Bank, "at", at)
			if err != nil {
				return err
			}
			return p.openBook(cmd, loaded.Settings, func(app *bootstrap.App) error {
				office, err := app.Backoffice(cmd.Context())
				if err != nil {
					return err
				}
				return printCustomer(cmd, office.Finder, customer, until)
			})
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "at the end of this `day`, or before this time")
	return cmd
}

func printCustomer(cmd *cobra.Command, finder *backoffice.Finder, number int64, until time.Time) error {
	customer, err := finder.Customer(cmd.Context(), number, until)
	if err != nil {
		return err
	}
	t := newTable(cmd.OutOrStdout())
	fmt.Fprintln(t, "POSITION\tHAS")
	for _, h := range customer.Holdings {
		fmt.Fprintf(t, "%s %s\t%s\n", h.Key.IMKBCode, oneWord(h.Key.HolderCorporationName), h.Units)
	}
	for _, a := range customer.Accounts {
		fmt.Fprintf(t, "account %d-%d-%d\t%s %s\n", a.Key.BranchCode, a.Key.CustomerNo, a.Key.AccountSuffix, a.Balance, a.Key.Currency.Code())
	}
	lines := 0
	for line, err := range finder.Statement(cmd.Context(), number, until) {
		if err != nil {
			return err
		}
		if lines++; lines == 1 {
			fmt.Fprintln(t, "\nPOSTED\tOPERATION\tKIND\tPOSITION\tBY\tAFTER")
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", stamp(line.PostedAt), line.OperationID, line.Kind, line.Position(), line.Format(line.Quantity), line.Format(line.After))
	}
	if len(customer.Holdings)+len(customer.Accounts)+lines == 0 {
		return fmt.Errorf("not found: customer %d has no holding, no account and no posting", number)
	}
	return t.Flush()
}

func (p program) showNotificationCommand() *cobra.Command {
	var pushID string
	cmd := &cobra.Command{
		Use:         "notification --push-id ID",
		Short:       "Show the notifications with a PushId",
		Long:        "Shows who sent a push message, when and to whom, with all its fields, as NDJSON.",
		Example:     "  bankingapi show notification --push-id push-0001",
		Args:        named(),
		Annotations: mentionSettings(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if pushID == "" {
				return wrongUsef("--push-id is missing")
			}
			return p.withApp(cmd, func(app *bootstrap.App) error {
				var found int64
				err := app.Export(cmd.Context(), "notifications", "ndjson", bootstrap.ExportFilter{PushID: pushID}, cmd.OutOrStdout(), func(rows int64) { found = rows })
				if err == nil && found == 0 {
					err = errors.New("not found: a notification with this PushId")
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&pushID, "push-id", "", "`PushId` of the notification")
	return cmd
}
