package console_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// What an operator is asked for, with and without scripts. Each task takes fewer
// than six actions: a click, or a text and Enter.
func TestTasksOfAnOperator(t *testing.T) {
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprintf("scripts %t", scripts), func(t *testing.T) {
			ctx := browse(t, 1280, 900)
			s := start(t, nil)
			k := s.fill(t)
			if !scripts {
				_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
				require.NoError(t, err)
			}
			open(ctx, t, s.currentLink())
			for _, task := range tasks(s, k) {
				actions = 0
				open(ctx, t, s.home+"/console/")
				task.do(ctx, t)
				require.Contains(t, pageText(ctx, t), task.sees, task.name)
				require.Less(t, actions, 6, task.name)
			}
		})
	}
}

// actions counts what the operator did in a task.
var actions int

type task struct {
	name string
	do   func(context.Context, *testing.T)
	sees string
}

func find(text string) func(context.Context, *testing.T) {
	return func(ctx context.Context, t *testing.T) {
		actions++
		write(ctx, t, `input[name=q]`, text)
		submit(ctx, t, `.search button`)
	}
}

func click(selectors ...string) func(context.Context, *testing.T) {
	return func(ctx context.Context, t *testing.T) {
		for _, each := range selectors {
			actions++
			submit(ctx, t, each)
		}
	}
}

func then(all ...func(context.Context, *testing.T)) func(context.Context, *testing.T) {
	return func(ctx context.Context, t *testing.T) {
		for _, each := range all {
			each(ctx, t)
		}
	}
}

func pageText(ctx context.Context, t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.TextContent(chromedp.CSS("main")))
	require.NoError(t, err)
	return text
}

func page(name string) string { return fmt.Sprintf(`nav a[href="/console/%s"]`, name) }

func tasks(s *service, k known) []task {
	confirm := func(reason string) func(context.Context, *testing.T) {
		return func(ctx context.Context, t *testing.T) {
			actions += 2
			write(ctx, t, `.confirm input[name=reason]`, reason)
			press(ctx, t, `.confirm input[name=confirm]`)
		}
	}
	return []task{
		{"my sale of yesterday is missing: by CallerId", find("order-4711"), "15.43 TRY"},
		{"how the proceeds were rounded", find(k.sale), "15.4320975"},
		{"why a sale was refused", find("order-too-much"), "holding-insufficient"},
		{"the request that a partner quotes", find("req-367"), "order-4711"},
		{"what a customer holds", find("1001"), "Statement"},
		{"the owner of an account", find("1-1001-1"), "Statement"},
		{"partner says it sent push Y", find("push-2"), "Messages"},
		{"the messages of a user", find("user-3"), "Android"},
		{"what happened today", click(page("")), "what this replica answered"},
		{"what waits for its day", click(page("due")), "4 sales wait"},
		{"cancel a recorded operation", then(find(k.later), confirm("the customer called"), click(".confirm button")), "is cancelled"},
		{"reverse a sale that was credited twice", then(find(k.sale), confirm("credited twice"), click(".confirm button")), "is reversed"},
		{"who reversed it and why", click(page("audit")), "credited twice"},
		{"does the book hold", then(click(page("proof"), "main form button"), func(ctx context.Context, t *testing.T) {
			require.Eventually(t, func() bool {
				open(ctx, t, s.home+"/console/proof")
				return !strings.Contains(pageText(ctx, t), "rows checked")
			}, stepLimit, 10*time.Millisecond)
		}), "the book is correct"},
	}
}
