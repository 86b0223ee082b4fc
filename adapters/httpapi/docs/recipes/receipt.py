# python receipt.py FILE KEY  (Python 3.8 or later, and: pip install cryptography)
import hashlib, json, sys
from base64 import b64decode
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
def sha256(data):
    return hashlib.sha256(data).digest()
receipt = json.loads(b64decode(open(sys.argv[1]).read().split()[-1]))
leaf, record, index = b64decode(receipt["leaf"]), b64decode(receipt["record"]), receipt["index"]
text, _, line = receipt["checkpoint"].rpartition("\n\n")
name, key_id, key = sys.argv[2].split("+", 2)
if sha256(f"{name}\n".encode() + b64decode(key))[:4].hex() != key_id:
    sys.exit("This is not the bank's key: copy it again.")
# The bank signed this record. verify raises InvalidSignature if it did not.
Ed25519PublicKey.from_public_bytes(b64decode(key)[1:]).verify(b64decode(line.split(" ")[-1])[4:], f"{text}\n".encode())
if text != f"{name} receipt\n{record.hex()}":
    sys.exit("The bank signed something else.")
# The leaf is in the tree of the record (RFC 9162): above the lowest joins, each sibling is on the left.
last, node = int.from_bytes(record[35:39], "big") - 1, sha256(b"\0" + leaf)
joins = (index ^ last).bit_length()
for i, sibling in enumerate(map(b64decode, receipt["path"])):
    node = sha256(b"\1" + (sibling + node if i >= joins or index >> i & 1 else node + sibling))
if index > last or len(receipt["path"]) != joins + bin(index >> joins).count("1") or node != record[39:]:
    sys.exit("The operation is not in the receipt.")
while leaf:  # The texts that the bank signed, each after its length.
    size = shift = 0
    while leaf[0] > 127:
        leaf, size, shift = leaf[1:], size | (leaf[0] & 127) << shift, shift + 7
    size |= leaf[0] << shift
    print(ascii(leaf[1:1 + size].decode()))
    leaf = leaf[1 + size:]
