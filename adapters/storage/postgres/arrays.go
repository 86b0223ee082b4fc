package postgres

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// arrayCodec writes the arrays of a batch directly into the message. pgx plans and wraps every
// element, which took a fifth of the service's time under load. For everything else it uses the
// codec of pgx.
type arrayCodec struct{ *pgtype.ArrayCodec }

// useArrayCodec registers the codec for the arrays that package storage sends.
func useArrayCodec(m *pgtype.Map) {
	for _, array := range []uint32{pgtype.Int8ArrayOID, pgtype.TextArrayOID, pgtype.ByteaArrayOID, pgtype.UUIDArrayOID, pgtype.TimestamptzArrayOID} {
		t, _ := m.TypeForOID(array)
		if codec, ok := t.Codec.(*pgtype.ArrayCodec); ok {
			m.RegisterType(&pgtype.Type{Name: t.Name, OID: array, Codec: arrayCodec{codec}})
		}
	}
}

// elements are the OIDs of the elements of the arrays that package storage sends.
var elements = map[reflect.Type]uint32{
	reflect.TypeFor[[]int64]():      pgtype.Int8OID,
	reflect.TypeFor[[]*int64]():     pgtype.Int8OID,
	reflect.TypeFor[[]string]():     pgtype.TextOID,
	reflect.TypeFor[[][]byte]():     pgtype.ByteaOID,
	reflect.TypeFor[[][16]byte]():   pgtype.UUIDOID,
	reflect.TypeFor[[]*time.Time](): pgtype.TimestamptzOID,
}

func (c arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode && elements[reflect.TypeOf(value)] == c.ElementType.OID {
		return c
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

// Encode implements pgtype.EncodePlan.
func (c arrayCodec) Encode(value any, b []byte) ([]byte, error) {
	element := c.ElementType.OID
	switch v := value.(type) {
	case []int64:
		return encode(b, element, v, appendInteger), nil
	case []*int64:
		return encode(b, element, v, func(b []byte, n *int64) []byte {
			if n == nil {
				return appendNull(b)
			}
			return appendInteger(b, *n)
		}), nil
	case []string:
		return encode(b, element, v, appendText), nil
	case [][]byte:
		return encode(b, element, v, appendText), nil
	case [][16]byte:
		return encode(b, element, v, func(b []byte, id [16]byte) []byte { return appendText(b, id[:]) }), nil
	case []*time.Time:
		return encode(b, element, v, func(b []byte, t *time.Time) []byte {
			if t == nil {
				return appendNull(b)
			}
			return appendInteger(b, t.UnixMicro()-epoch)
		}), nil
	}
	return nil, fmt.Errorf("no array of %T", value)
}

// epoch is the start of Postgres timestamps, 2000-01-01, in Unix microseconds.
const epoch = 946_684_800_000_000

// encode writes an array of one dimension in the format of array_recv.
func encode[T any](b []byte, element uint32, values []T, appendValue func([]byte, T) []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, 1) // dimensions
	b = binary.BigEndian.AppendUint32(b, 1) // NULLs are possible
	b = binary.BigEndian.AppendUint32(b, element)
	b = binary.BigEndian.AppendUint32(b, uint32(len(values))) //nolint:gosec // a batch has some thousand rows
	b = binary.BigEndian.AppendUint32(b, 1)                   // the first index
	for _, v := range values {
		b = appendValue(b, v)
	}
	return b
}

func appendInteger(b []byte, n int64) []byte {
	b = binary.BigEndian.AppendUint32(b, 8)
	return binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // two's complement is correct here
}

func appendText[T string | []byte](b []byte, text T) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(text))) //nolint:gosec // texts are shorter than a body
	return append(b, text...)
}

func appendNull(b []byte) []byte { return append(b, 0xff, 0xff, 0xff, 0xff) }
