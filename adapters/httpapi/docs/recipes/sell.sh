#!/bin/sh
# Sends one sale until its outcome is certain, for about two minutes. The second argument is the CallerId of an earlier
# attempt. Store the CallerId with your order before the first attempt.
units=${1:-12.5}
caller_id=${2:-sale-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')}
end=$(($(date +%s) + 120))
sent=${2:+yes}
while :; do
  # The first attempt is alone, because it may not reach the service. Later ones are repeated by curl, after the time that
  # Retry-After asks for.
  answer=$(curl -sS --max-time 15 ${sent:+--retry 5 --retry-max-time 60} -w '\n%{http_code}' \
    "$BANK_URL/BankingApiV01/BuyFundFromCustomer" \
    -H "Content-Type: application/json" -H "Ocp-Apim-Subscription-Key: $BANK_KEY" -d '{
      "Header": { "CallerId": "'"$caller_id"'" },
      "Parameters": [{
        "CustomerNo": 1001, "TransactionType": 2, "FundAmount": '"$units"',
        "DestinationAccount": { "BranchCode": 1, "CustomerNo": 1001, "AccountSuffix": 1, "CurrencyCode": "TRY" },
        "FundToProcess": { "IMKBCode": "AFA", "HolderCorporationName": "Demo Portfoy", "PriceID": 1 }
      }]
    }')
  status=$?
  case $status in
    6 | 7 | 35 | 60) ;; # no connection: nothing was sent
    *) sent=yes ;;
  esac
  code=$(echo "$answer" | tail -n 1)
  case $status,$code in
    0,408 | 0,429 | 0,50[0234]) ;;
    0,*) break ;;
  esac
  [ "$(date +%s)" -lt "$end" ] || break
  sleep 2
done
echo "$answer" | sed '$d'
case $status$code$answer in
  0200*) exit 0 ;;
  0400*'"State":8'*) echo "invalid, without effect" >&2 ;;
  *) if [ "$sent" ]; then echo "outcome not known: send the sale again with CallerId $caller_id" >&2; else echo "not sent" >&2; fi ;;
esac
exit 1
