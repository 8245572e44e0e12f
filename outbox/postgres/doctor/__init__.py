"""Looking at the database: is everything there as it was made, and does anything stand in the way. Nothing is changed."""
