#!/bin/sh
# Prints each outcome of your operations, for ever. The file keeps the cursor of the last page that was processed.
kept=${1:-outcomes.cursor}
while :; do
  after=$(cat "$kept" 2>/dev/null)
  answer=$(curl -sS --max-time 40 -w '\n%{http_code}' -G "$BANK_URL/outcomes" \
    --data-urlencode "after=$after" --data-urlencode "wait=20s" -H "Ocp-Apim-Subscription-Key: $BANK_KEY")
  [ $? -eq 0 ] || { sleep 2 && continue; } # no whole answer
  case $(echo "$answer" | tail -n 1) in
    200) answer=$(echo "$answer" | sed '$d') ;;
    410) rm -f "$kept" && continue ;; # the bank's book has lost the outcome: begin again, and skip what you know by its OperationId
    429 | 5??) sleep 2 && continue ;;
    *) echo "$answer" >&2 && exit 1 ;; # refused: no repeat changes it
  esac
  # Process the page here, before the cursor is kept: after a stop the same page comes again. The file is replaced, so that
  # a full disk leaves the cursor as it is.
  echo "$answer"
  next=$(echo "$answer" | sed -n 's/.*"Next":"\([^"]*\)".*/\1/p')
  printf '%s' "$next" >"$kept.new" && mv "$kept.new" "$kept" || exit
  [ -z "$ONCE" ] || exit 0
  case $answer in *'"Outcomes":[]'*) sleep 1 ;; esac # with very many callers, the service does not hold the request
done
