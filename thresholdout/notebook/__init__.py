"""What a notebook shows of answers, guards, plans and certificates: small cards in HTML."""
