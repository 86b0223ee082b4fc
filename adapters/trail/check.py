#!/usr/bin/env python3
"""Checks the proofs of the trail in a file: check.py PROOF VKEY

It needs Python 3.8 and nothing else, no database and none of our code. It
prints the leaves, a quoted value a line, and exits with 0 if all proofs hold,
with 1 if one does not. README.md beside this file describes the format.
"""
import base64
import hashlib
import json
import re
import sys


def sha256(data):
    return hashlib.sha256(data).digest()


def unbase64(text):
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:
        raise ValueError("base64 in another form")
    return data


def root_of(path, size, index, node):  # RFC 9162, section 2.1.3.2
    fn, sn = index, size - 1
    for p in path:
        if len(p) != 32 or sn == 0:
            raise ValueError("the path has the wrong form")
        if fn & 1 or fn == sn:
            node = sha256(b"\x01" + p + node)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            node = sha256(b"\x01" + node + p)
        fn, sn = fn >> 1, sn >> 1
    if sn != 0:
        raise ValueError("the path is too short")
    return node


# Ed25519, RFC 8032, section 5.1
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):
    x = (a[1] - a[0]) * (b[1] - b[0]) % P
    y = (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = y - x, d - c, d + c, y + x
    return e * f % P, g * h % P, f * g % P, e * h % P


def mul(n, a):
    q = (0, 1, 1, 0)
    while n:
        if n & 1:
            q = add(q, a)
        a, n = add(a, a), n >> 1
    return q


def point(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - x2) % P or y >= P or x == 0 and sign:
        raise ValueError("not a point of the curve")
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def verify(key, message, signature):
    s = int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    a, b = mul(s, BASE), add(point(signature[:32]), mul(h, point(key)))
    return s < L and not (a[0] * b[2] - b[0] * a[2]) % P and not (a[1] * b[2] - b[1] * a[2]) % P


def open_note(note, vkey):  # C2SP signed-note
    name, _, key = vkey.strip().partition("+")
    key_hash, _, key = key.partition("+")
    key = unbase64(key)
    if key[0] != 1 or len(key) != 33 or sha256(name.encode() + b"\n" + key)[:4].hex() != key_hash:
        raise ValueError("not a verifying key")
    text, separator, line = note.rpartition("\n\n")
    text += "\n"
    start = f"\u2014 {name} "
    if not separator or not line.startswith(start) or not line.endswith("\n"):
        raise ValueError("the note has another form")
    signature = unbase64(line[len(start):-1])
    if signature[:4].hex() != key_hash or len(signature) != 68:
        raise ValueError("the signature is not of this key")
    if not verify(key[1:], text.encode(), signature[4:]):
        raise ValueError("the signature does not verify")
    return name, text


def texts(data):
    while data:
        size, shift, byte = 0, 0, 128
        while byte > 127:
            byte, data = data[0], data[1:]
            size, shift = size | (byte & 127) << shift, shift + 7
        if size > len(data):
            raise ValueError("the leaf is too short")
        yield data[:size].decode()
        data = data[size:]


def check(proof, vkey):
    name, text = open_note(proof["checkpoint"], vkey)
    leaf, record = unbase64(proof["leaf"]), unbase64(proof["record"])
    path = [unbase64(h) for h in proof["path"]]
    log_path = [unbase64(h) for h in proof["logPath"]]
    index, position = proof["index"], proof["position"]
    if proof["format"] != "bankingapi proof 1" or not record.startswith(b"bankingapi batch 1\n") or len(record) != 71:
        raise ValueError("not a proof")
    leaves, root = int.from_bytes(record[35:39], "big"), record[39:]
    if leaves != proof["leaves"] or not 0 <= index < leaves or root_of(path, leaves, index, sha256(b"\0" + leaf)) != root:
        raise ValueError("the leaf is not in its batch")
    if position == -1:
        if text != f"{name} receipt\n{record.hex()}\n":
            raise ValueError("the signature is of another receipt")
        if log_path:
            raise ValueError("a receipt has no logPath")
        return "receipt of " + name, f"The receipt holds: {name} signed it.", leaf
    origin, size, log_root = text.split("\n")[:3]
    if origin != name or not 0 <= position < int(size) or \
            root_of(log_path, int(size), position, sha256(b"\0" + record)) != unbase64(log_root):
        raise ValueError("the batch is not in the log")
    verdict = f"The proof holds: the checkpoint of {origin} with the size {size} has it."
    return f"checkpoint of {origin} with {size} batches", verdict, leaf


DECIMALS = {"FundAmount": 6, "SettledPrice": 8, "Price": 8}
# Minor units of the currency in the other member.
MINOR = {"Proceeds": "ProceedsCurrencyCode", "Amount": "DestinationAccount.CurrencyCode"}


def quoted(text):  # in one line, whatever a partner has sent
    return '"' + "".join(
        c if c.isprintable() and c not in '"\\' else "\\u{%x}" % ord(c) for c in text) + '"'


def readable(name, value, group):
    if name in MINOR:
        return f"{quoted(value)} minor units of {quoted(group.get(MINOR[name], ''))}"
    decimals = DECIMALS.get(name, 0)
    digits = value.lstrip("-")
    if decimals and digits.isdecimal():
        digits = digits.rjust(decimals + 1, "0")
        fraction = digits[-decimals:].rstrip("0")
        value = ("-" if value[0] == "-" else "") + digits[:-decimals] + ("." + fraction if fraction else "")
    return quoted(value)


def groups_of(parts):  # a name with an empty value begins a group
    name, members = "", []
    for member in parts:
        value = next(parts)
        if value:
            members.append((member, value))
        else:
            yield name, members
            name, members = member, []
    yield name, members


def facts(leaf):
    parts = texts(leaf)
    if next(parts) != "bankingapi leaf 2":
        raise ValueError("not a leaf")
    yield f"leaf: {quoted(next(parts))} {quoted(next(parts))}"
    for name, members in groups_of(parts):
        group = dict(members)
        for member, value in members:
            yield f"{name + '.' if name else ''}{member}: {readable(member, value, group)}"


# The members of a proof, with their types. true is no number.
MEMBERS = {"format": str, "leaf": str, "index": int, "leaves": int, "path": list, "record": str, "position": int,
           "logPath": list, "checkpoint": str}


def proofs(text):  # one after the other, each in any spelling of its JSON
    decoder = json.JSONDecoder(object_pairs_hook=once)
    space = re.compile(r"[ \t\r\n]*")
    at = space.match(text).end()
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        yield members_of(value)
        at = space.match(text, at).end()


def members_of(proof):
    if type(proof) is not dict or set(proof) != set(MEMBERS):
        raise ValueError("not the members of a proof")
    for name, kind in MEMBERS.items():
        if type(proof[name]) is not kind:
            raise ValueError(f"{name} is of another type")
    return proof


def once(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a member is there twice")
    return dict(pairs)


def main(file, vkey):
    verdicts = {}
    with open(file, encoding="utf-8") as content:
        for proof in proofs(content.read()):
            found, verdict, leaf = check(proof, vkey)
            verdicts[verdict] = True
            print("in the " + found, *facts(leaf), sep="\n")
    if not verdicts:
        raise ValueError("the file has no proof")
    print(*verdicts, sep="\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        main(sys.argv[1], sys.argv[2])
    except (ValueError, KeyError, TypeError, IndexError, StopIteration, RuntimeError) as why:
        sys.exit(f"the proof does not hold: {why}")
