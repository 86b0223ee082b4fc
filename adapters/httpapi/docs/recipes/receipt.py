# python receipt.py FILE KEY  (Python 3.8 or later, and: pip install cryptography)
import base64, hashlib, json, sys
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

def sha256(data):
    return hashlib.sha256(data).digest()

with open(sys.argv[1]) as file:
    receipt = json.loads(base64.b64decode(file.read().split()[-1]))
leaf, record = base64.b64decode(receipt["leaf"]), base64.b64decode(receipt["record"])
text, _, line = receipt["checkpoint"].rpartition("\n\n")
name, key_id, key = sys.argv[2].split("+", 2)
if sha256(f"{name}\n".encode() + base64.b64decode(key))[:4].hex() != key_id:
    sys.exit("This is not the bank's key: copy it again.")

# The bank signed this record. verify raises InvalidSignature if it did not.
Ed25519PublicKey.from_public_bytes(base64.b64decode(key)[1:]).verify(
    base64.b64decode(line.split(" ")[-1])[4:], f"{text}\n".encode())
if text != f"{name} receipt\n{record.hex()}":
    sys.exit("The bank signed something else.")

# The leaf belongs to the record (RFC 9162, section 2.1.3.2).
index, last, node = receipt["index"], int.from_bytes(record[35:39], "big") - 1, sha256(b"\0" + leaf)
for other in map(base64.b64decode, receipt["path"]):
    if index & 1 or index == last:
        node = sha256(b"\1" + other + node)
        while not index & 1 and index:
            index, last = index >> 1, last >> 1
    else:
        node = sha256(b"\1" + node + other)
    index, last = index >> 1, last >> 1
if last != 0 or node != record[39:]:
    sys.exit("The operation is not in the receipt.")

# What the bank signed: texts, each after its length.
while leaf:
    size, shift = leaf[0] & 127, 7
    while leaf[0] > 127:
        leaf = leaf[1:]
        size, shift = size | (leaf[0] & 127) << shift, shift + 7
    print(ascii(leaf[1:1 + size].decode()))
    leaf = leaf[1 + size:]
print("The receipt holds.", file=sys.stderr)
