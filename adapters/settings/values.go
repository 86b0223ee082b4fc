package settings

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Secret is a setting that must stay secret. It always appears as *** when it is printed,
// logged or encoded. Convert it to string to use it.
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

var sizeUnits = []string{"", "KiB", "MiB", "GiB"} // each is 1024 times the previous unit

// String returns the size in the largest unit that divides it.
func (s Size) String() string {
	unit := 0
	for ; s != 0 && s%1024 == 0 && unit < len(sizeUnits)-1; unit++ {
		s /= 1024
	}
	return strconv.FormatInt(int64(s), 10) + sizeUnits[unit]
}

func parseSize(text string) (Size, error) {
	digits := strings.TrimRight(text, "KMGiB")
	n, err := strconv.ParseInt(digits, 10, 64)
	unit := slices.Index(sizeUnits, text[len(digits):])
	if err != nil || unit < 0 || n<<(10*unit)>>(10*unit) != n {
		return 0, strconv.ErrSyntax
	}
	return Size(n << (10 * unit)), nil
}

// List is a list of words, separated by commas. Spaces around a word are ignored. In a YAML
// file it may also be a sequence.
type List string

// Items returns the words, without empty ones.
func (l List) Items() (items []string) {
	for item := range strings.SplitSeq(string(l), ",") {
		item = strings.TrimSpace(item)
		if item != "" {
			items = append(items, item)
		}
	}
	return items
}

// Networks returns the words as networks. An address is a network of one address, and an IPv4
// address may be written as IPv6. It fails if a word is neither a network nor an address.
func (l List) Networks() (networks []netip.Prefix, err error) {
	for _, text := range l.Items() {
		network, err := netip.ParsePrefix(text)
		if address, isAlone := netip.ParseAddr(text); isAlone == nil {
			network, err = address.Prefix(address.BitLen())
		}
		if err != nil {
			return nil, err
		}
		address := network.Addr()
		if address.Is4In6() && network.Bits() >= 96 { // of ::ffff:10.0.0.7
			network = netip.PrefixFrom(address.Unmap(), network.Bits()-96)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// assign reads text into the field of Settings that target points to. The error is a rule to
// follow. It never repeats the text, which may be a misplaced secret. After an error the field
// is unchanged.
func assign(target any, text string) error {
	switch target := target.(type) {
	case *bool:
		return set(target, text, strconv.ParseBool, "true or false")
	case *int:
		return set(target, text, strconv.Atoi, "a whole number")
	case *time.Duration:
		return set(target, text, time.ParseDuration, "a duration with its unit, like 500ms, 15s or 1m30s")
	case *Size:
		return set(target, text, parseSize, "a size in bytes, like 65536, 512KiB or 1MiB")
	}
	reflect.ValueOf(target).Elem().SetString(text) // string, Secret or List
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

// Value returns the value as a person would write it, or *** for a secret. Short times are in
// seconds: 60s, not 1m0s.
func (s Setting) Value() string {
	if d, ok := s.field.(*time.Duration); ok && *d%time.Second == 0 && d.Abs() < 2*time.Minute {
		return fmt.Sprintf("%ds", *d/time.Second)
	}
	return fmt.Sprint(reflect.ValueOf(s.field).Elem())
}
