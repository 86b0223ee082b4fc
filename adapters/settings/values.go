package settings

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Secret is a setting that must not be seen: however it is printed, logged or
// encoded, it comes out as ***. Convert it to string to use it.
type Secret string

const mask = "***"

// String hides the secret.
func (Secret) String() string { return mask }

// Format hides the secret from every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, mask) }

// MarshalText hides the secret from JSON, YAML and zap.
func (Secret) MarshalText() ([]byte, error) { return []byte(mask), nil }

// Size is a number of bytes, written as 1048576, 512KiB, 1MiB or 1GiB.
type Size int64

var sizeUnits = [...]struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// String is the size in the largest unit that divides it.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// List is a list of words, separated by commas. Spaces around a word do not
// count. In a YAML file it may also be a sequence.
type List string

// Items returns the words, without empty ones.
func (l List) Items() []string {
	var items []string
	for item := range strings.SplitSeq(string(l), ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// Networks returns the words as networks: an address alone is a network of one.
// It fails if a word is neither.
func (l List) Networks() (networks []netip.Prefix, err error) {
	for _, text := range l.Items() {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			address, err := netip.ParseAddr(text)
			if err != nil {
				return nil, err
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

func parseSize(text string) (Size, error) {
	unit := int64(1)
	for _, u := range sizeUnits {
		if digits, found := strings.CutSuffix(text, u.name); found {
			text, unit = digits, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return 0, strconv.ErrSyntax
	}
	return Size(n * unit), nil
}

// assign reads text into the field of Settings that target points to. The error
// is a rule to follow; it never repeats the text, which may be a misplaced
// secret. Then the field stays as it is.
func assign(target any, text string) error {
	switch target := target.(type) {
	case *string:
		*target = text
	case *Secret:
		*target = Secret(text)
	case *List:
		*target = List(text)
	case *bool:
		return set(target, text, strconv.ParseBool, "true or false")
	case *int:
		return set(target, text, strconv.Atoi, "a whole number")
	case *time.Duration:
		return set(target, text, time.ParseDuration, "a duration with its unit, like 500ms, 15s or 1m30s")
	case *Size:
		return set(target, text, parseSize, "a size in bytes, like 65536, 512KiB or 1MiB")
	default:
		panic(fmt.Sprintf("settings: no way to read a setting into %T", target))
	}
	return nil
}

func set[T any](target *T, text string, parse func(string) (T, error), what string) error {
	value, err := parse(text)
	if err != nil {
		return errors.New("must be " + what)
	}
	*target = value
	return nil
}

// show is the field that target points to in the form assign reads; a Secret
// stays hidden.
func show(target any) string {
	if d, ok := target.(*time.Duration); ok {
		return showDuration(*d)
	}
	return fmt.Sprint(reflect.ValueOf(target).Elem())
}

// showDuration writes short times in seconds, as people do: 60s, not 1m0s.
func showDuration(d time.Duration) string {
	if d%time.Second == 0 && d.Abs() < 2*time.Minute {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return d.String()
}
