package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever writes a file by hand learns what is wrong with a step.
func TestAWrongStepIsNamed(t *testing.T) {
	t.Parallel()
	p := &play{
		Bank:   &Bank{Keys: map[string]string{"full": "key"}, Zone: time.UTC},
		opened: time.Date(2026, time.November, 20, 15, 0, 0, 0, time.UTC),
	}
	for part, want := range map[string]string{
		"x\nclok {{today 1}} 00:00:00":                    `"clok 2026-11-21 00:00:00" is no line of a step`,
		"x\n\nPOST /path":                                 "",
		"x":                                               "it has no request",
		"x\ntogether\nPOST /path":                         `"together" needs a number: together 20`,
		"x\nuntil often\nPOST /path":                      `"until often" needs a number: until 20`,
		"x\nuntil 429\nbook":                              "until and together stand before a request",
		"x\nPOST /path\nKey: {{key \"ful\"}}":             `this bank has no subscription "ful"`,
		"x\nPOST /path\nno header":                        `"no header" is no line of a step`,
		"x\nPOST /path\n\n{{sale `FundAmount`}}":          `"FundAmount" is not NAME=JSON`,
		"x\nPOST /path\n\n{{sale `CurrencyCode=TRY`}}":    `"CurrencyCode=TRY" is not NAME=JSON`,
		"x\nPOST /path\n\n{{sale FundAmount=2}}":          "bad character",
		"x\npost /path":                                   `"post /path" is no line of a step`,
		"x\nPOST /path\n\n{}\n\n=> 200 OK\n\n{}\nPOST /x": "",
	} {
		_, err := p.parse(part)
		if want == "" {
			require.NoError(t, err, part)
		} else {
			require.ErrorContains(t, err, want, part)
		}
	}
}
