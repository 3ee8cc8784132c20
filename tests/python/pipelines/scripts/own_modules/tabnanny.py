WHO = "the script's own"
