#!/bin/sh
# sh sell.sh UNITS [CALLER_ID]: the CallerId is that of an earlier attempt. Needs curl 7.83 or later.
units=${1:-12.5}
caller_id=${2:-sale-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')} # store it with your order before the first attempt
maybe=${2:+yes}                                                      # an attempt may have worked
patience=120                                                         # seconds in which the outcome must be certain
end=$(($(date +%s) + patience))
pause=1
while :; do
  answer=$(curl -sS --max-time 15 -w '\n%{http_code} %header{retry-after}' \
    "$BANK_URL/BankingApiV01/BuyFundFromCustomer" \
    -H "Content-Type: application/json" -H "Ocp-Apim-Subscription-Key: $BANK_KEY" -d '{
      "Header": { "CallerId": "'"$caller_id"'" },
      "Parameters": [{
        "CustomerNo": 1001, "TransactionType": 2, "FundAmount": '"$units"',
        "DestinationAccount": { "BranchCode": 1, "CustomerNo": 1001, "AccountSuffix": 1, "CurrencyCode": "TRY" },
        "FundToProcess": { "IMKBCode": "AFA", "HolderCorporationName": "Demo Portfoy", "PriceID": 1 }
      }]
    }')
  curl=$?
  status=$(echo "$answer" | tail -n 1)
  body=$(echo "$answer" | sed '$d' | tr -d '\r\n')
  state=$(echo "$body" | sed -n 's/^ *{.*"Data" *: *{ *"State" *: *\([128]\) *[,}].*} *$/\1/p')
  case $curl,$status,$state in
    0,200*,[12]) echo "State $state" && exit 0 ;;
    0,[24]00*,8) echo "State 8" && echo "$body" >&2 && exit 1 ;; # no effect
    0,200*,* | 0,408*,* | 0,50[0234]*,*) maybe=yes repeat=yes ;;
    0,429*,*) repeat=yes ;;
    0,40[01345]*,* | 0,41[35]*,* | 0,422*,*) repeat= ;;
    0,*) maybe=yes repeat= ;;
    3,* | 6,* | 60,* | 77,*) repeat= ;; # a wrong address, an unknown host, an untrusted certificate
    7,* | 35,*) repeat=yes ;;           # no connection
    *) maybe=yes repeat=yes ;;          # no whole answer
  esac
  case $curl,${status#* } in
    0,*[!0-9]*) wait=$(($(date -d "${status#* }" +%s 2>/dev/null || echo 0) - $(date +%s))) ;; # a date
    0,?*) wait=${status#* } ;;
    *) wait=0 ;;
  esac
  [ "$wait" -gt "$pause" ] || wait=$pause
  if [ -z "$repeat" ] || [ $(($(date +%s) + wait)) -gt "$end" ]; then break; fi
  sleep "$wait"
  pause=$((pause < 8 ? pause * 2 : 10))
done
[ "$curl" -ne 0 ] || echo "${status%% *} $body" >&2 # curl has named its own cause
if [ "$maybe" ]; then
  echo "outcome not known: send CallerId $caller_id again" >&2
  exit 2
fi
echo "not carried out" >&2
exit 1
